# Print 5,000 different numbers below 100,000, in English and in German words, tab-separated.
# awk -f numbers.awk
function english(n) {
    if (n >= 1000) return english(int(n / 1000)) " thousand" and_then(english(n % 1000))
    if (n >= 100) return en[int(n / 100)] " hundred" and_then(english(n % 100))
    return n < 20 ? en[n] : en_tens[int(n / 10)] and_then(en[n % 10])
}
function german(n) {
    if (n >= 1000) return german(int(n / 1000)) " tausend" and_then(german(n % 1000))
    if (n >= 100) return de[int(n / 100)] " hundert" and_then(german(n % 100))
    return n < 20 ? de[n] : (n % 10 ? de[n % 10] " und " : "") de_tens[int(n / 10)]
}
function and_then(words) { return (words == "" ? "" : " ") words }
BEGIN {
    split("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen " \
          "sixteen seventeen eighteen nineteen", en, " ")
    split("ten twenty thirty forty fifty sixty seventy eighty ninety", en_tens, " ")
    split("ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn " \
          "sechzehn siebzehn achtzehn neunzehn", de, " ")
    split("zehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig", de_tens, " ")
    for (k = 1; k <= 5000; k++) {
        n = k * 7919 % 100000
        print english(n) "\t" german(n)
    }
}
