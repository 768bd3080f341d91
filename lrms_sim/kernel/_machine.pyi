# A machine is driven by other kernels; `_kernel` is one for Python.
