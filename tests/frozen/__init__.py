"""What must not change while the house is rebuilt, frozen as golden files.

`python -m tests.frozen.make [PART ...]` writes them from the code as it is; a test file for each part compares. See
README.md here. What is shipped with the project is held by tests/unit/test_shipped*.py and not repeated here.
"""
