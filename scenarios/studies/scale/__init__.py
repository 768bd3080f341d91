"""What exchange costs and brings among very many sites."""
