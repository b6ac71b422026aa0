"""What statistics, sensitivities and certificates are made of: no records, no noise."""
