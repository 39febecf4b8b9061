"""A trace's report as a page, as Markdown and as a picture."""
