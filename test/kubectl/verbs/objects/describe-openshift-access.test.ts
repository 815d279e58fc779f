/** Pages of `describe` about users, quotas and security context constraints, which have the content of oc's pages. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startServer } from '../../../apiserver/harness.ts';
import { runClient } from '../../run-client.ts';

const OBJECTS = `
apiVersion: v1
kind: Namespace
metadata: {name: demo}
---
apiVersion: user.openshift.io/v1
kind: User
metadata: {name: ada}
fullName: Ada L.
---
apiVersion: user.openshift.io/v1
kind: User
metadata: {name: bob}
identities: ["ldap:bob", "ldap:absent"]
---
apiVersion: user.openshift.io/v1
kind: Identity
metadata: {name: "ldap:bob"}
providerName: ldap
providerUserName: bob
user: {name: ada, uid: other}
---
apiVersion: user.openshift.io/v1
kind: Group
metadata: {name: team, labels: {unit: lab}}
users: [ada, bob]
---
apiVersion: quota.openshift.io/v1
kind: ClusterResourceQuota
metadata: {name: all}
spec:
  selector:
    labels: {matchLabels: {team: lab}}
    annotations: {openshift.io/requester: ada}
  quota: {hard: {pods: "10", requests.memory: 4Gi}, scopes: [NotTerminating]}
---
apiVersion: authorization.openshift.io/v1
kind: RoleBindingRestriction
metadata: {name: only-team, namespace: demo}
spec: {grouprestriction: {groups: [team, ops], labels: [{matchLabels: {unit: lab}}]}}
---
apiVersion: security.openshift.io/v1
kind: SecurityContextConstraints
metadata: {name: tight}
priority: 7
allowPrivilegedContainer: false
allowPrivilegeEscalation: false
allowHostDirVolumePlugin: false
allowHostNetwork: true
allowHostPorts: false
allowHostPID: false
allowHostIPC: false
readOnlyRootFilesystem: true
requiredDropCapabilities: [KILL, MKNOD]
defaultAddCapabilities: null
allowedCapabilities: [NET_BIND_SERVICE]
allowedFlexVolumes: [{driver: example/lvm}]
seccompProfiles: [runtime/default]
volumes: [configMap, flexVolume, secret]
users: ["system:serviceaccount:demo:default"]
groups: []
runAsUser: {type: MustRunAsRange, uidRangeMin: 1000, uidRangeMax: 2000}
seLinuxContext: {type: MustRunAs, seLinuxOptions: {level: "s0:c1"}}
fsGroup: {type: MustRunAs, ranges: [{min: 1, max: 5}, {min: 9, max: 9}]}
supplementalGroups: {type: RunAsAny}
`;

describe('describe of users, quotas and security context constraints of OpenShift', () => {
  let server: Awaited<ReturnType<typeof startServer>>;

  before(async () => {
    server = await startServer();
    process.env['KUBECACHEDIR'] = server.directory;
    await must(['apply', '-f', '-'], OBJECTS);
  });
  after(() => server.stop());

  async function must(args: readonly string[], input?: string): Promise<string> {
    const { code, stdout, stderr } = await runClient(
      ['--kubeconfig', server.kubeconfig, '--namespace=demo', ...args],
      input,
    );
    assert.equal(code, 0, stderr);
    return stdout.replaceAll(/^(Created:\s+)[\w ]* ago/gm, '$1<age> ago');
  }

  test('shows the identities of a user, with those that do not refer to the user', async () => {
    assert.equal(
      await must(['describe', 'user', 'bob']),
      `Name:         bob
Created:      <age> ago
Labels:       <none>
Annotations:  <none>
Identities:   ldap:bob (Error: Identity maps to user name 'ada')
              ldap:absent (Error: Identity does not exist)
`,
    );
    assert.match(await must(['describe', 'user', 'ada']), /^Full Name: +Ada L\.\nIdentities: +<none>$/m);
  });

  test('shows the user of an identity, with the errors of the reference', async () => {
    const uid = await must(['get', 'user', 'ada', '-o', 'jsonpath={.metadata.uid}']);
    assert.equal(
      (await must(['describe', 'identity', 'ldap:bob'])).split('\n').slice(-3).join('\n'),
      `User Name:    ada (Error: User identities do not include ldap:bob)
User UID:     other (Error: Actual user UID is ${uid})
`,
    );
  });

  test('shows the users of a group', async () => {
    assert.match(await must(['describe', 'group', 'team']), /^Labels: +unit=lab\n.*\nUsers: +ada\n {14}bob\n$/m);
  });

  test('shows the selectors and the usage of a cluster quota', async () => {
    const status = {
      total: { hard: { pods: '10', 'requests.memory': '4Gi' }, used: { pods: '3', 'requests.memory': '1Gi' } },
      namespaces: [{ namespace: 'demo', status: {} }],
    };
    await must([
      ...['patch', 'clusterresourcequota', 'all', '--subresource=status', '--type=merge'],
      `-p=${JSON.stringify({ status })}`,
    ]);
    const page = await must(['describe', 'clusterresourcequota', 'all']);
    assert.equal(
      page.slice(page.indexOf('Namespace Selector')),
      `Namespace Selector: ["demo"]
Label Selector: team=lab
AnnotationSelector: map[openshift.io/requester:ada]
Scopes:          NotTerminating
Resource         Used  Hard
--------         ----  ----
pods             3     10
requests.memory  1Gi   4Gi
`,
    );
  });

  test('shows the subjects that a role binding restriction allows', async () => {
    const page = await must(['describe', 'rolebindingrestriction', 'only-team']);
    assert.match(page, /^Subject type: +Group\nGroups: +team, ops\nLabel selectors:\n +unit=lab\n$/m);
  });

  test('shows the access and the settings of security context constraints', async () => {
    assert.equal(
      (await must(['describe', 'scc', 'tight'])).replaceAll(/ +$/gm, ''),
      `Name:                                     tight
Priority:                                 7
Access:
  Users:                                  system:serviceaccount:demo:default
  Groups:                                 <none>
Settings:
  Allow Privileged:                       false
  Allow Privilege Escalation:             false
  Default Add Capabilities:               <none>
  Required Drop Capabilities:             KILL,MKNOD
  Allowed Capabilities:                   NET_BIND_SERVICE
  Allowed Seccomp Profiles:               runtime/default
  Allowed Volume Types:                   configMap,flexVolume,secret
  Allowed Flexvolumes:                    driver=example/lvm
  Allowed Unsafe Sysctls:                 <none>
  Forbidden Sysctls:                      <none>
  Allow Host Network:                     true
  Allow Host Ports:                       false
  Allow Host PID:                         false
  Allow Host IPC:                         false
  Read Only Root Filesystem:              true
  Run As User Strategy: MustRunAsRange
    UID:                                  <none>
    UID Range Min:                        1000
    UID Range Max:                        2000
  SELinux Context Strategy: MustRunAs
    User:                                 <none>
    Role:                                 <none>
    Type:                                 <none>
    Level:                                s0:c1
  FSGroup Strategy: MustRunAs
    Ranges:                               1-5,9-9
  Supplemental Groups Strategy: RunAsAny
    Ranges:                               <none>
`,
    );
  });
});
