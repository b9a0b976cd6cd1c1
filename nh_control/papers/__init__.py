"""The experiments of the papers this package is built on: figures out, and their numbers as
JSON.
"""
