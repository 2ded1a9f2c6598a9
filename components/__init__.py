"""UI components: pure builders from data to HTML or figures, each with a thin Streamlit wrapper."""
