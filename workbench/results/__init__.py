"""Functions that turn results into styled lines for screens and reports. They do not use Textual."""
