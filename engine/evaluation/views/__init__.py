"""Views of an evaluation: the numbers that its charts draw, each with an interval and how many examples it rests on."""
