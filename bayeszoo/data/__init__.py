"""A user's data: tables read strictly, and checked arrays made of them."""
