"""What an agent says of its cluster on the hub: status, claims, signs of life, its certificate."""
