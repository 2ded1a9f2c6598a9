"""Test a claim: does a rule over the words or regions of an input predict the model?"""

from __future__ import annotations

from components.rules.page import rules_page

rules_page()
