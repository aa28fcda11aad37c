"""What is wrong with a deployment before it hurts: facts of a cluster, judged without I/O."""
