/** Compares htpasswd hashes with those of openssl and bcryptjs. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { hashSync } from 'bcryptjs';
import { isPasswordOf } from '../../../../src/openshift/oauth/io/hashes.ts';

describe('hashes of passwords', () => {
  it('accepts apr1 password hashes of openssl for passwords of all lengths', () => {
    for (const password of ['x', 'password1', 'sixteen-letters!', 'seventeen-letters', 'ä'.repeat(40)]) {
      const hash = execFileSync('openssl', ['passwd', '-apr1', '-salt', 'a.b/c', '-stdin'], {
        input: `${password}\n`,
        encoding: 'utf8',
      }).trim();
      assert.equal(isPasswordOf(password, hash), true, password);
      assert.equal(isPasswordOf(`${password}x`, hash), false, password);
    }
  });

  it('accepts bcrypt password hashes with all prefixes, up to a limited cost', () => {
    const hash = hashSync('password1', 4);
    for (const spelling of ['$2a$', '$2b$', '$2y$']) {
      assert.equal(isPasswordOf('password1', hash.replace('$2b$', spelling)), true, spelling);
      assert.equal(isPasswordOf('password2', hash.replace('$2b$', spelling)), false, spelling);
    }
    assert.equal(isPasswordOf('password1', hash.replace('$04$', '$31$')), false);
  });

  it('accepts SHA password hashes and rejects text that is not a hash', () => {
    const hash = `{SHA}${createHash('sha1').update('password1').digest('base64')}`;
    assert.deepEqual([isPasswordOf('password1', hash), isPasswordOf('password2', hash)], [true, false]);
    for (const other of ['', 'password1', '$1$x$y', '{SHA}', '$2b$10$short'])
      assert.equal(isPasswordOf('password1', other), false, other);
  });
});
