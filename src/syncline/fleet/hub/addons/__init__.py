"""Add-ons on the hub: installed by Placements, configured, deployed as works, registered, watched over."""
