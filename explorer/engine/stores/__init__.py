"""Where Keys and Values live. A store decides what is kept and how it is read; the decoder never knows."""
