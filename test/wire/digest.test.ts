import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { contentDigest, sha256Base64, sha256Base64url, sha256Hex } from '../../src/wire/digest.ts';
import { generator } from '../support/random.ts';

test('the one-shot hash of random texts and bytes equals the hash of a byte stream', () => {
  const random = generator(3);
  for (let run = 0; run < 300; run++) {
    const bytes = Uint8Array.from({ length: Math.floor(random() * 200) }, () => Math.floor(random() * 256));
    const text = String.fromCodePoint(...Array.from(bytes, (byte) => byte * 100));
    for (const [content, encoded] of [
      [bytes, bytes],
      [text, Buffer.from(text)],
    ] as const) {
      const stream = createHash('sha256');
      for (const byte of encoded) stream.update(Uint8Array.of(byte));
      const digest = stream.digest();
      assert.equal(sha256Hex(content), digest.toString('hex'));
      assert.equal(sha256Base64(content), digest.toString('base64'));
      assert.equal(sha256Base64url(content), digest.toString('base64url'));
      assert.equal(contentDigest(content), `sha256:${digest.toString('hex')}`);
    }
  }
});
