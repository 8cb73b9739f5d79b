"""Every tiny role by name."""

from collections.abc import Mapping

from coterie.datatypes import UserError
from miniatures.consulting.recipes import CONSULTING
from miniatures.deferral.recipes import DEFERRAL
from miniatures.recipe import Recipe
from miniatures.teaching.recipes import TEACHING

RECIPES: Mapping[str, Recipe] = {
    recipe.role: recipe for recipe in (*TEACHING, *DEFERRAL, *CONSULTING)
}


def recipe_of(role: str) -> Recipe:
    """The recipe of one role by name."""
    if role not in RECIPES:
        raise UserError(f"unknown tiny role {role!r}; known: {', '.join(RECIPES)}")
    return RECIPES[role]
