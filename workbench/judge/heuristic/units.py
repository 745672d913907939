"""Units of measure and number words, and what they count in."""

_UNITS = (
    ("speed", 1, "km/h|kmh"),
    ("speed", 1.609344, "mph"),
    ("length", 0.001, "mm"),
    ("length", 0.01, "cm"),
    ("length", 1, "m|met(?:re|er)s?|metros?|mètres?"),
    ("length", 1000, "km|kilomet(?:re|er)s?|kilómetros?|quilómetros?|公里"),
    ("length", 1609.344, "miles?|mi"),
    ("length", 0.3048, "feet|foot|ft"),
    ("mass", 0.001, "mg|milligrams?"),
    ("mass", 1, "g|grams?|gramm"),
    ("mass", 1000, "kg|kilos?|kilograms?"),
    ("mass", 453.592, "lbs?"),
    ("time", 1, "s|secs?|seconds?|sekunden?|segundos?|secondes?|秒|초"),
    ("time", 60, "min|mins|minutes?|minuten?|minutos?|分間?|分钟|분"),
    ("time", 3600, "h|hrs?|hours?|stunden?|horas?|heures?|ore|час(?:а|ов)?|時間|小时|시간"),
    ("time", 86400, "days?|tage?n?|días?|dias?|jours?|giorn[oi]|дн(?:я|ей)|день|日|天|일"),
    ("time", 604800, "weeks?|wochen?|semanas?|semaines?|週間?|周|주"),
    ("time", 2592000, "months?|monate?n?|mes(?:es)?|mois|か月|ヶ月|個月|个月|개월"),
    ("time", 31536000, "years?|jahre?n?|años?|anos?|ans?|лет|год(?:а)?|年間?|년"),
    ("volume", 0.001, "ml"),
    ("volume", 1, "l|lit(?:re|er)s?|litros?"),
    ("celsius", 1, "°\\s?c|℃|degrees?(?: celsius)?|grad|grados|graus|degrés|градус(?:а|ов)?|度"),
    ("fahrenheit", 1, "°\\s?f|degrees fahrenheit"),
    ("percent", 1, "%|percent|per cent|prozent|por ?cien(?:to)|pour cent|パーセント|процент(?:а|ов)?"),
    ("eur", 1, "€|eur|euros?|ユーロ|欧元|евро|유로"),
    ("usd", 1, "\\$|usd|dollars?|dólares|ドル|美元"),
    ("gbp", 1, "£|gbp"),
    ("jpy", 1, "¥|円|yen|jpy"),
    ("cny", 1, "元|cny|rmb|yuan"),
    ("byte", 1000, "kb"),
    ("byte", 1e6, "mb"),
    ("byte", 1e9, "gb"),
)
"""(what it measures, how much of it one is, how it is written)."""

UNITS = [(dimension, float(factor), form) for dimension, factor, form in _UNITS]

MONEY = frozenset({"eur", "usd", "gbp", "jpy", "cny"})

MULTIPLIERS = {
    "thousand": 1e3,
    "tausend": 1e3,
    "mil": 1e3,
    "mille": 1e3,
    "k": 1e3,
    "million": 1e6,
    "millions": 1e6,
    "millionen": 1e6,
    "millones": 1e6,
    "milhões": 1e6,
    "mio.": 1e6,
    "m": 1e6,
    "billion": 1e9,
    "mrd.": 1e9,
    "万": 1e4,
    "萬": 1e4,
    "億": 1e8,
    "亿": 1e8,
}

_COUNTED = (
    "zero;;two zwei dos deux duas dois due два две;three drei tres trois três tre три;"
    "four vier cuatro quatre quatro quattro четыре;five fünf cinco cinq cinque пять;six sechs шесть;"
    "seven sieben siete sept sete sette семь;eight acht ocho huit oito otto восемь;nine neun nueve neuf nove девять;"
    "ten zehn diez dez dieci десять;eleven elf onze;twelve zwölf doce douze doze dodici;thirteen;fourteen vierzehn;"
    "fifteen fünfzehn quince quinze;sixteen;seventeen;eighteen;nineteen;twenty zwanzig veinte vingt vinte venti"
)
NUMBER_WORDS = {word: float(n) for n, words in enumerate(_COUNTED.split(";")) for word in words.split()}
NUMBER_WORDS |= {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "ninety": 90.0, "dozen": 12.0}

ARTICLES = {
    "a",
    "an",
    "one",
    "eins",
    "ein",
    "eine",
    "einen",
    "einem",
    "einer",
    "un",
    "una",
    "une",
    "um",
    "uma",
    "один",
    "одну",
}
"""One, where a unit follows: "one hour", but not "one moment"."""

HAN_DIGITS = {digit: n for n, digit in enumerate("〇一二三四五六七八九")} | {"两": 2, "兩": 2}
HAN_TENS = {"十": 10, "百": 100, "千": 1000}

MONTHS = (
    "jan(?:uary|uar|vier)?|enero|janeiro|gennaio|января",
    "feb(?:ruary|ruar|rero)?|février|fevereiro|febbraio|февраля",
    "mar(?:ch|zo|ço)?|märz|mars|марта",
    "apr(?:il|ile)?|abril|avril|апреля",
    "may|mai|mayo|maio|maggio|мая",
    "june?|juni|junio|juin|junho|giugno|июня",
    "july?|juli|julio|juillet|julho|luglio|июля",
    "aug(?:ust)?|agosto|août|августа",
    "sep(?:t(?:ember)?)?|septiembre|septembre|setembro|settembre|сентября",
    "oct(?:ober)?|oktober|okt|octubre|octobre|outubro|ottobre|октября",
    "nov(?:ember)?|noviembre|novembre|novembro|ноября",
    "dec(?:ember)?|dezember|dez|diciembre|décembre|dezembro|dicembre|декабря",
)
