"""The parts of the HTML report, one section a file; `bayeszoo.report` puts them together."""
