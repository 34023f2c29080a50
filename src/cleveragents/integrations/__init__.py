"""What comes from elsewhere and goes there: other formats, and contexts and sessions made of each other."""
