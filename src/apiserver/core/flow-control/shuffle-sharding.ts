/**
 * Shuffle sharding: the hash of a flow selects a hand of queues, so that a flow that fills its queues shares all of
 * them with few other flows. Source: KEP-1040, "Fair queuing for server requests";
 * k8s.io/apiserver/pkg/util/shufflesharding.
 */

const OFFSET = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;
const MASK = 0xffffffffffffffffn;

/** 64-bit hash of a flow: FNV-1a of schema and distinguisher, mixed so that all bits are equally distributed. */
export function flowHash(schema: string, distinguisher: string): bigint {
  let hash = OFFSET;
  // The length distinguishes ('a', 'bc') from ('ab', 'c').
  for (const text of [`${schema.length}:${schema}`, distinguisher]) {
    for (let at = 0; at < text.length; at++) hash = ((hash ^ BigInt(text.charCodeAt(at))) * PRIME) & MASK;
  }
  hash = ((hash ^ (hash >> 33n)) * 0xff51afd7ed558ccdn) & MASK;
  hash = ((hash ^ (hash >> 33n)) * 0xc4ceb9fe1a85ec53n) & MASK;
  return hash ^ (hash >> 33n);
}

/** Selects `hand` different queues of 0 … deck-1. All ordered hands are about equally likely. */
export function dealHand(hash: bigint, deck: number, hand: number): number[] {
  const dealt: number[] = [];
  let rest = hash;
  for (let left = deck; dealt.length < hand; left--) {
    let card = Number(rest % BigInt(left));
    rest /= BigInt(left);
    // `card` is an index among the remaining queues. The loop converts it to an index among all queues.
    for (const earlier of [...dealt].sort((a, b) => a - b)) if (card >= earlier) card += 1;
    dealt.push(card);
  }
  return dealt;
}
