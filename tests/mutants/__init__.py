"""How strong the tests are: one-line changes of the code that some test should notice."""
