"""Results as the files of other engines, and folders that appear whole or not at all."""
