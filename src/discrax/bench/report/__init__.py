"""What is shown of stored rows: tables beside print, plots, a page, and two runs beside each other."""
