"""ROS 2 nodes and conversions. Only this subpackage imports rclpy or messages."""
