/** Ciphers of stored values: known answers, comparison with openssl, and rejection of damaged values. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { aesCbc, aesGcm, derivedAesGcm, secretBox } from '../../../src/apiserver/encryption/ciphers.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex');

describe('ciphers', () => {
  it('decrypts the secretbox example of the NaCl documentation', () => {
    // Source: Bernstein, "Cryptography in NaCl", section 10; tests/secretbox.c.
    const key = hex('1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389');
    const nonce = hex('69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37');
    const sealed = hex(`f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186a
      c0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae
      90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74
      e355a5`);
    const plain = secretBox(key).open(Buffer.concat([nonce, sealed]), '');
    assert.equal(plain.toString('hex', 0, 16), 'be075fc53c81f2d5cf141316ebeb0c7b');
    assert.equal(plain.length, 131);
  });

  it('openssl decrypts values that are encrypted with AES-CBC', () => {
    const key = randomBytes(32);
    for (const length of [0, 1, 15, 16, 17, 1000]) {
      const plain = randomBytes(length);
      const sealed = aesCbc(key).seal(plain, '');
      const args = ['enc', '-d', '-aes-256-cbc', '-K', key.toString('hex'), '-iv', sealed.toString('hex', 0, 16)];
      assert.deepEqual(execFileSync('openssl', args, { input: sealed.subarray(16) }), plain);
    }
  });

  it('each cipher decrypts its own output, and rejects truncated values, changed values and other keys', () => {
    const makers = { aesGcm, derivedAesGcm, secretBox };
    for (const [name, make] of Object.entries(makers)) {
      const key = randomBytes(32);
      for (const length of [0, 1, 64, 5000]) {
        const plain = randomBytes(length);
        const sealed = make(key).seal(plain, '/registry/secrets/a/b');
        assert.deepEqual(make(key).open(sealed, '/registry/secrets/a/b'), plain, name);
        assert.notDeepEqual(make(key).seal(plain, '/registry/secrets/a/b'), sealed, 'no two are alike');
        for (let at = 0; at < sealed.length; at += Math.max(1, Math.floor(sealed.length / 40))) {
          const changed = Buffer.from(sealed);
          changed[at] = (changed[at] ?? 0) ^ 1;
          assert.throws(() => make(key).open(changed, '/registry/secrets/a/b'), `${name} ${at}`);
          assert.throws(() => make(key).open(sealed.subarray(0, at), '/registry/secrets/a/b'), `${name} cut at ${at}`);
        }
        assert.throws(() => make(randomBytes(32)).open(sealed, '/registry/secrets/a/b'), name);
        if (name !== 'secretBox') assert.throws(() => make(key).open(sealed, '/registry/secrets/a/c'), name);
      }
    }
    for (const size of [16, 24, 32]) {
      const key = randomBytes(size);
      assert.equal(
        aesGcm(key)
          .open(aesGcm(key).seal(Buffer.from('x'), 'k'), 'k')
          .toString(),
        'x',
      );
    }
  });
});
