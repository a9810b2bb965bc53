"""What `torture.py` does to commands: kills, damage, full disks, signals, rivals; and the data that they work on."""
