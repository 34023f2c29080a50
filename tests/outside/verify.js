// Verifies the checksum of an export document the way any program can: RFC 8785, integers past 2^53 as digits.
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');

class BigInteger { constructor(digits) { this.digits = digits; } }

// JSON.parse would round large integers, so they are taken out of the text first, as marked strings.
const MARK = '\u0001integer:';
function parse(text) {
  const token = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
  const marked = text.replace(token, (t) =>
    /^-?\d+$/.test(t) && !Number.isSafeInteger(Number(t)) ? JSON.stringify(MARK + t) : t);
  return JSON.parse(marked, (key, value) =>
    typeof value === 'string' && value.startsWith(MARK) ? new BigInteger(value.slice(MARK.length)) : value);
}

function canonical(value) {
  if (value instanceof BigInteger) return value.digits;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  return `{${Object.keys(value).sort().map((k) => `${JSON.stringify(k)}:${canonical(value[k])}`).join(',')}}`;
}

const { checksum, ...body } = parse(readFileSync(0, 'utf8'));
const digest = createHash('sha256').update(canonical(body), 'utf8').digest('hex');
console.log(`sha256:${digest}` === checksum ? 'verified' : 'changed');
