/**
 * HPACK's Huffman code (RFC 7541, appendix B). The code is canonical: codes of one length are assigned in symbol order,
 * so the code lengths define the whole table.
 */

/** Runs of equal code lengths over the symbols 0 to 256 (256 ends the string): length × count. */
const LENGTHS =
  '13 23 28x7 24 30 28x2 30 28x8 30 28x9 6 10x2 12 13 6 8 11 10x2 8 11 8 6x3 5x3 6x7 7 8 15 6 12 10 13 6 7x22 8 7 8 13 19 13 ' +
  '14 6 15 5 6 5 6 5 6x3 5 7x2 6x3 5 6 7 6 5x2 6 7x5 15 11 14 13 28 20 22 20x2 22x3 23 22 23x5 24 23 24x2 22 23 24 23x4 21 22 ' +
  '23 22 23x2 24 22 21 20 22x2 23x2 21 23 22x2 24 21 22 23x2 21x2 22 21 23 22 23x2 20 22x3 23 22x2 23 26x2 20 19 22 23 22 25 ' +
  '26x3 27x2 26 24 25 19 21 26 27x2 26 27 24 21x2 26x2 28 27x3 20 24 20 21 22 21x2 23 22x2 25x2 24x2 26 23 26 27 26x2 27x5 28 ' +
  '27x5 26 30';

const END = 256;

interface Node {
  zero: Node | number | undefined;
  one: Node | number | undefined;
}

function codeLengths(): number[] {
  const lengths: number[] = [];
  for (const run of LENGTHS.split(' ')) {
    const [length, count] = run.split('x').map(Number);
    for (let i = 0; i < (count ?? 1); i += 1) lengths.push(length as number);
  }
  return lengths;
}

function buildTree(): Node {
  const lengths = codeLengths();
  const root: Node = { zero: undefined, one: undefined };
  const symbols = lengths.map((length, symbol) => ({ length, symbol }));
  symbols.sort((a, b) => a.length - b.length || a.symbol - b.symbol);
  let code = 0;
  let width = 0;
  for (const { length, symbol } of symbols) {
    code *= 2 ** (length - width);
    width = length;
    insert(root, code, length, symbol);
    code += 1;
  }
  return root;
}

function insert(root: Node, code: number, length: number, symbol: number): void {
  let node = root;
  for (let bit = length - 1; bit > 0; bit -= 1) {
    const side = Math.floor(code / 2 ** bit) % 2 === 1 ? 'one' : 'zero';
    let next = node[side];
    if (typeof next !== 'object') {
      next = { zero: undefined, one: undefined };
      node[side] = next;
    }
    node = next;
  }
  node[code % 2 === 1 ? 'one' : 'zero'] = symbol;
}

const ROOT = buildTree();

/** Decodes a Huffman string to latin1; undefined if the bytes are not valid. */
export function decodeHuffman(bytes: Uint8Array): string | undefined {
  let text = '';
  let node = ROOT;
  let padding = 0;
  let onlyOnes = true;
  for (const byte of bytes) {
    for (let mask = 0x80; mask > 0; mask >>= 1) {
      const one = (byte & mask) !== 0;
      const next = one ? node.one : node.zero;
      padding += 1;
      onlyOnes &&= one;
      if (next === undefined || next === END) return undefined;
      if (typeof next === 'number') {
        text += String.fromCharCode(next);
        node = ROOT;
        padding = 0;
        onlyOnes = true;
      } else node = next;
    }
  }
  // The remaining bits are padding: fewer than eight, all ones.
  return padding < 8 && onlyOnes ? text : undefined;
}
