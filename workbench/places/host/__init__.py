"""The host: our program on another machine. It starts agents there as a workbench does on its own.

It runs in any Python 3.11 or later without installed packages. `shipping` lists its files.
"""
