"""The dashboard as one Streamlit script with its settings, run by `exegesis app`.

The folder contains nothing else, because Streamlit puts the folder of its script first on the import path. `app.py` and
`.streamlit/config.toml` at the top of a checkout are links into it, for `streamlit run app.py`.
"""
