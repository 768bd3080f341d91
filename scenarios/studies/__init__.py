"""The experiments of the papers, each as one command: `scenario paper NAME`.

A study runs everything that its paper shows in figures and tables, and puts what was measured
beside what the paper prints.
"""
