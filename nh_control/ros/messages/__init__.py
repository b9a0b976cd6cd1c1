"""Messages and their conversions. Only this subpackage reads or writes message fields."""
