"""Forward and backward passes of recurrent cells."""
