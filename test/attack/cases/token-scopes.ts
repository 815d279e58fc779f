/** Scoped tokens: every server of a host must enforce the scopes. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import type { AttackLab } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const USER = 'scoped-admin';

/** An OAuth access token of the user with the given scopes. */
async function tokenWith(lab: AttackLab, userUid: string, scopes: readonly string[]): Promise<string> {
  const secret = randomBytes(32).toString('base64url');
  const name = `sha256~${createHash('sha256').update(secret).digest('base64url')}`;
  await lab.pods.apply({
    apiVersion: 'oauth.openshift.io/v1',
    kind: 'OAuthAccessToken',
    metadata: { name },
    clientName: 'openshift-challenging-client',
    expiresIn: 3600,
    userName: USER,
    userUID: userUid,
    scopes,
    redirectURI: 'https://localhost/oauth/token/implicit',
  });
  return `sha256~${secret}`;
}

export const cases: readonly AttackCase[] = [
  {
    finding: 49,
    title: 'a token with the scope user:info cannot read machine configurations or the kubelet API',
    attack: async (lab) => {
      await lab.pods.apply(
        { apiVersion: 'user.openshift.io/v1', kind: 'User', metadata: { name: USER } },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRoleBinding',
          metadata: { name: USER },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: USER }],
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        },
      );
      const uid = (await lab.pods.kubectl('get', 'user', USER, '-o', 'jsonpath={.metadata.uid}')).trim();
      const narrow = await tokenWith(lab, uid, ['user:info']);
      const full = await tokenWith(lab, uid, ['user:full']);
      const codeOf = async (url: string, token: string): Promise<number> =>
        (await lab.curl(url, ['-H', `Authorization: Bearer ${token}`])).code;
      const own = 'https://127.0.0.1:8443/apis/user.openshift.io/v1/users/~';
      assert.deepEqual([await codeOf(own, narrow), await codeOf(own, full)], [200, 200]);
      for (const url of ['https://127.0.0.1:22623/config/master', 'https://127.0.0.1:10250/pods']) {
        assert.equal(await codeOf(url, narrow), 403, url);
        assert.equal(await codeOf(url, full), 200, url);
      }
      await lab.pods.kubectl('delete', 'user', USER);
      await lab.pods.kubectl('delete', 'clusterrolebinding', USER);
    },
  },
];
