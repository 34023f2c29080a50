"""Where bytes go: files written so that a crash leaves them whole."""
