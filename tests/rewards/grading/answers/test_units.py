"""The unit of an answer, and the one that its question asks for."""

import pytest

from coterie.datatypes import Problem
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.answers.question_units import contradicts, question_units


@pytest.mark.parametrize(
    ("question", "gold", "right", "wrong"),
    [
        ("How many minutes does it take?", "30",
         "30|30 minutes|30 min|30 (minutes)", r"30 hours|30%|$30|\$30|30 seconds|30 km|30°"),
        ("How many dollars is it?", "30", r"$30|\$30.00", "€30|30 cents|30%"),
        ("How many apples are left?", "9", "9 apples|9", "9 kg|9%|$9|9 hours"),
        ("How many purple zebras are not asleep?", "9", "9 zebras|9 purple zebras|9 zebra",
         "9 gnus|9 not zebras|9 asleep or not|9 million zebras|9g"),
        ("How many grams do the zebras eat?", "9", "9g", ""),
        ("How much does it cost?", "5", "$5|5 euros|5", "5%|5 hours"),
        ("How far is it, in kilometers?", "5", "5 km|5", "5 miles|5 meters|$5"),
        ("How many square feet is it?", "5", "5 square feet|5 ft^2", "5 feet|5 m^2"),
        ("How many miles per hour?", "60", "60 mph|60 miles|60 miles per hour", "60 km"),
        ("What percent of them is red?", "20", "20%|20|20 percent", "$20|20 cm"),
        ("How fast is it, in m/s?", "12", "12 m/s|12", "12 km/h|12 m|12 s"),
        ("How long is it, in metres?", "36", "36 metres", "36 metres per second|36 m^2"),
        ("How many minutes does she run daily?", "9", "9 minutes per day", "9 minutes a week"),
        ("What does it cost in euros?", "18", "18 euros|€18", "18 cents|£18|$18"),
        ("How much does it cost in euros?", "18", "18 €", "18 cents|£18|$18"),
        ("What is the density in g/cm^3?", "2.7", "2.7 g/cm^3", "2.7 kg|2.7 g/m^3|2.7 g"),
        ("What is its area in cm²?", "5", "5 cm^2", "5 cm|5 m^2|5 cm^3"),
        ("What percent of the class is absent?", "15", "15%", "15 students|15 pupils left"),
        ("How many minutes are left?", "30", "30 left|30 in total", "30 apples|30 laps"),
        ("How many pages does he read each day?", "9", "9 pages per day|9 pages", "9 days"),
        ("How many five dollar toys can he buy?", "9", "9 toys", "9 dollars|$9"),
        ("How many pages does he read?", "9", "9 pages", "9 pages per day"),
        ("How many cows are left?", "9", "9 cows are left|9 are left", "9 are gone"),
        ("Meat costs $4 a pound. How much does he pay for 6 pounds?", "24",
         "$24|24 dollars", "24 pounds|£24|24 cents"),
        ("Sand costs $.5 a pound. How much do 6 pounds cost?", "3", "$3", "3 pounds"),
        ("Meat costs 4 dollars a pound. How much does it cost?", "4", "$4", "4 lb"),
        ("A pen costs £4. How much do 3 cost?", "12", "£12|12 pounds", "$12|12 kg"),
        ("A pen costs 4 pounds. How much do 3 cost?", "12", "£12|12 pounds", "$12"),
        ("Kelvin had $9 and spent $2. How much is left?", "7", "$7", "7 K"),
        ("The gas is 9 K hot. How many kelvins are 2 K less?", "7", "7 K|7", "$7|7°C"),
        ("How many cents is it?", "85", "85¢|85 cents", "85€"),
        ("How much money does he save a week?", "9", "$9 per week|$9|$9/week", "$9/day|9 a day"),
        ("How much rent is it a month?", "9", "$9 a month|$9", "$9 per year"),
        ("What percentage of apples is red?", "9", "9% of the apples", "9 apples"),
        ("How many more hours a day?", "3", "3 hours|3 hrs|3 hours a day", "3 days"),
        ("How many more apples?", "8", "8 more|8 more apples", "8 less"),
        ("How much money has he?", "8", "$8 left|8 dollars remaining", "8 hours left"),
        ("How many does she need?", "8", "$8|8", ""),
        ("What is it in km per hour?", "5", "5 km/h", "5 km|5 miles|5%"),
        ("What is the area in cm^2?", "5", "5 cm^2|5", ""),
        ("How long is it?", "5", "5 m|5 cm|5 hours", "5 million"),
        ("What is the angle?", "30", r"30^\circ|30 degrees", ""),
        ("How cold is it at night, in degrees Celsius?", "-4",
         r"-4|-4 °C|−4℃|-4 degrees|-4 degrees Celsius|-4 C|-4^\circ\text{C}",
         "-4 °F|-4 degrees Fahrenheit|-4 K|-4 cm|-4 F"),
        ("How many degrees Fahrenheit is 25°C?", "77",
         r"77|77°F|77 F|77 degrees Fahrenheit|77^{\circ} F", "77°C|77 degrees Celsius|77 C"),
        ("Convert 68°F to °C.", "20", "20°C|20 degrees C|20°", "20°F|20 kelvin"),
        ("It was 8°C and fell by 3 degrees. And now?", "5", "5°C|5 degrees", "5°F"),
        ("How large is the angle, in degrees?", "30", "30°|30 degrees", "30 °C|30 F"),
        ("A hall has 9 rows with 8 chairs in each row. How many chairs are there?", "72",
         "72 chairs|72 chairs in the hall|72 things", "72 rows|72 row"),
        ("There are 9 rows. Each row has 8 chairs. How many rows are left?", "72",
         "72 rows", "72 chairs"),
        ("He had 80 sheep in 9 pens. 8 ran off. How many remain?", "72", "72 sheep", "72 pens"),
        ("Of 80 pupils 8 have a dog. How many own a cat?", "72", "72 pupils", ""),
        ("80 people met. 8 like tea. How many prefer coffee?", "72", "72 people", ""),
        ("What is the number of Aaron's brothers, if Ben has 8 brothers?", "72", "72 brothers", ""),
        ("Find the total number of miles the two friends run.", "72", "72 miles", "72 hours"),
        ("How many gallon cans of paint will she buy?", "72",
         "72 cans|72 gallon cans", "72 gallons"),
        ("How many dollar bills has he?", "72", "72 bills|72 dollar bills", "72 cents"),
        ("How many positive integers fit?", "72", "72 positive integers", "72 negative integers"),
        ("How many more wins than losses has she?", "72",
         "72 more wins than losses", "72 more losses"),
        ("38 pens, 45 caps. How many pens and caps are there?", "72",
         "72 pens and caps|72 pens", "72 caps"),
        ("How many degrees above the limit is it?", "72", "72 degrees above the limit", "72 hours"),
        ("How many boys and girls are there?", "72",
         "72 boys and girls|72 children", "72 thousand boys"),
        ("How many million cows are there in 8 towns?", "72",
         "72 cows", "72 thousand cows|72 towns"),
        ("Eight teams have nine players each. How many are there?", "72",
         "72 players|72 teams", ""),
        ("9 boxes hold 8 caps per box. How many caps?", "72", "72 caps", "72 boxes"),
        ("He has 9 hens and 8 ducks. How many left?", "72", "72 hens|72 hens left|72 left", ""),
        ("He has 9 hens and 8 ducks. How many more hens than ducks?", "72",
         "72 more|72 hens|72 more hens", ""),
    ],
)  # fmt: skip
def test_a_unit_or_thing_that_contradicts_the_question_is_wrong(
    question: str, gold: str, right: str, wrong: str, checker: Checker
) -> None:
    asked = Problem("p", question, gold, "number")
    answers = [answer for answer in f"{right}|{wrong}".split("|") if answer]
    paid = [each for each in answers if checker.check(rf"\boxed{{{each}}}", asked).correct]
    assert paid == right.split("|")


def test_the_unit_of_a_question_is_the_one_after_how_many() -> None:
    assert question_units("How many full minutes of the 3 hours?") == {"minute"}
    assert question_units("How many pieces of 5 cm?") == {""}
    assert question_units("He ran for 5 hours. How far, in meters?") == {"meter"}
    assert question_units("What is left?") == frozenset()
    assert not contradicts("", "How many minutes?")
