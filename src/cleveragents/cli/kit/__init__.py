"""What commands share: output and tables, options and types of parameters, the group that imports on use."""
