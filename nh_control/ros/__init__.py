"""ROS 2 nodes and conversions: the only part of the package that imports rclpy or messages."""
