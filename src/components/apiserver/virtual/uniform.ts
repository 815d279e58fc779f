import type { RandomSource } from '../../../base/clock.ts';

/** Values that templates generate are passwords as a rule, so their randomness is the cryptographic one. */
export const secretUniform = (random: RandomSource) => (): number => {
  const [a = 0, b = 0, c = 0, d = 0] = random.bytes(4);
  return (a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d) / 2 ** 32;
};
