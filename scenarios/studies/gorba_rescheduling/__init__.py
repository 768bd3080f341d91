"""Fast Multi-Objective Rescheduling of Workflows … (paper 004), measured again.

W. Jakob, F. Möser, A. Quinte, K.-U. Stucky, W. Süß; Scalable Computing: Practice and Experience,
2010.
"""
