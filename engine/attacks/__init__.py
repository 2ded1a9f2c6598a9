"""Adversarial examples for explanations: small input changes that change the map but keep the predicted class.

`attack` attacks one example or several, `plan` declares the experiment on many examples, `experiment` runs it. The
package imports none of them, so the command line starts quickly.
"""
