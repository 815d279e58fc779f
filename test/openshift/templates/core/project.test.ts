import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nameRefusal, projectObjects } from '../../../../src/openshift/templates/core/project.ts';

const parameter = (name: string): string => `$\{${name}}`;

const PARAMETERS = {
  PROJECT_NAME: 'shop',
  PROJECT_DISPLAYNAME: `Shop ${parameter('PROJECT_NAME')}`,
  PROJECT_DESCRIPTION: '',
  PROJECT_ADMIN_USER: 'ann',
  PROJECT_REQUESTING_USER: 'ann',
};

const random = (): number => 0.5;

describe('project requests', () => {
  test('rejects project requests with a reserved name', () => {
    for (const name of ['openshift', 'kubernetes', 'kube', 'openshift-x', 'kubernetes-x', 'kube-x'])
      assert.match(nameRefusal(name) ?? '', /^cannot request a project (with the name|starting with) "/, name);
    for (const name of ['shop', 'openshiftx', 'my-kube']) assert.equal(nameRefusal(name), undefined, name);
  });

  test('creates a requested project with an administrator if no project template is configured', () => {
    const made = projectObjects(undefined, PARAMETERS, random);
    assert.ok(typeof made !== 'string');
    assert.deepEqual(made.project['metadata'], {
      name: 'shop',
      annotations: {
        'openshift.io/description': '',
        // A value that looks like a parameter is not replaced again.
        'openshift.io/display-name': `Shop ${parameter('PROJECT_NAME')}`,
        'openshift.io/requester': 'ann',
      },
    });
    assert.deepEqual(
      made.content.map(({ kind, subjects }) => [kind, subjects]),
      [['RoleBinding', [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }]]],
    );
  });

  test('requires exactly one Project in a project template', () => {
    const project = {
      apiVersion: 'project.openshift.io/v1',
      kind: 'Project',
      metadata: { name: parameter('PROJECT_NAME') },
    };
    const quota = { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: `of-${parameter('TEAM')}` } };
    const parameters = [{ name: 'TEAM', value: 'blue' }, { name: 'PROJECT_NAME' }];
    const made = projectObjects({ objects: [quota, project], parameters }, PARAMETERS, random);
    assert.ok(typeof made !== 'string');
    assert.deepEqual(made.content, [{ ...quota, metadata: { name: 'of-blue' } }]);
    assert.equal(projectObjects({ objects: [quota] }, PARAMETERS, random), 'must contain a project resource');
    assert.equal(
      projectObjects({ objects: [project, project] }, PARAMETERS, random),
      'must contain only one project resource',
    );
  });
});
