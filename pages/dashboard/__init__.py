"""The dashboard as one Streamlit script, with its settings: what `exegesis app` runs.

The folder holds nothing else, because Streamlit puts the folder of its script first on the import path. `app.py` and
`.streamlit/config.toml` at the top of a checkout are links to it, for `streamlit run app.py`.
"""
