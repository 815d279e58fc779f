/** Claim mapping, according to the documentation of AuthenticationConfiguration. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type ClaimRules,
  compileClaimExpression as cel,
  userOfClaims,
} from '../../../src/apiserver/authentication/claims.ts';

const none = { requiredClaims: new Map<string, string>() };
const claims = {
  sub: 'ann',
  email: 'ann@example.com',
  email_verified: true,
  roles: 'user,admin',
  teams: ['a', 'b'],
  tenancy_name: 'acme',
  nbf: 100,
  exp: 3700,
  jti: 'id-1',
};

describe('claim mappings', () => {
  it('maps claims of a token to a user by expressions', () => {
    const user = userOfClaims(
      {
        ...none,
        username: cel("claims.sub + ':external-user'", 'text'),
        groups: cel("claims.roles.split(',')", 'texts'),
        uid: cel('claims.sub', 'text'),
        extra: [
          { key: 'example.com/tenant', value: cel('claims.tenancy_name', 'texts') },
          { key: 'example.com/teams', value: cel('claims.teams', 'texts') },
          { key: 'example.com/none', value: cel("claims.?nothing.orValue('')", 'texts') },
        ],
        claimRules: [{ expression: cel('claims.exp - claims.nbf <= 86400', 'rule'), message: 'too long' }],
        userRules: [
          { expression: cel("!user.username.startsWith('system:')", 'user rule'), message: '' },
          {
            expression: cel("user.groups.all(g, !g.startsWith('system:')) && user.uid == 'ann'", 'user rule'),
            message: '',
          },
          { expression: cel("user.extra['example.com/tenant'] == ['acme']", 'user rule'), message: '' },
        ],
      },
      claims,
    );
    assert.deepEqual(user, {
      name: 'ann:external-user',
      uid: 'ann',
      groups: ['user', 'admin'],
      extra: {
        'example.com/tenant': ['acme'],
        'example.com/teams': ['a', 'b'],
        'authentication.kubernetes.io/credential-id': ['JTI=id-1'],
      },
    });
  });

  it('rejects tokens whose claims fail a mapping or a validation rule', () => {
    const sub = { claim: 'sub', prefix: '' };
    const cases: [ClaimRules, RegExp][] = [
      [
        { ...none, username: cel('claims.missing', 'text') },
        /expression 'claims\.missing' resulted in error: no such key/,
      ],
      [{ ...none, username: cel('claims.nbf', 'text') }, /username: must be a non-empty string/],
      [{ ...none, username: cel("''", 'text') }, /username: must be a non-empty string/],
      [
        { ...none, username: sub, groups: cel('claims.nbf', 'texts') },
        /groups: must be a string or an array of strings/,
      ],
      [{ ...none, username: sub, uid: cel('claims.nbf', 'text') }, /uid: must be a string/],
      [
        { ...none, username: sub, extra: [{ key: 'a.b/c', value: cel('claims.nbf', 'texts') }] },
        /extra\[a\.b\/c\]: must be a string or an array of strings/,
      ],
      [
        {
          ...none,
          username: sub,
          claimRules: [{ expression: cel("claims.sub == 'bob'", 'rule'), message: 'only bob' }],
        },
        /validation expression 'claims\.sub == 'bob'' failed: only bob/,
      ],
      [
        {
          ...none,
          username: sub,
          userRules: [{ expression: cel("user.username == 'bob'", 'user rule'), message: '' }],
        },
        /validation expression .* failed$/,
      ],
      [{ username: sub, requiredClaims: new Map([['hd', 'x']]) }, /required claim hd/],
      [
        {
          ...none,
          username: cel("lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0)) ? 'x' : 'y'", 'text'),
        },
        /cost limit exceeded/,
      ],
    ];
    for (const [rules, message] of cases) assert.throws(() => userOfClaims(rules, claims), message);
  });
});
