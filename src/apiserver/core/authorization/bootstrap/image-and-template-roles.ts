/** Rules and roles of image.openshift.io and template.openshift.io. Source: openshift/openshift-apiserver. */
import type { ClusterRole, PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { aggregateTo, clusterRole, eventsRule, READ, rule, WRITE } from './notation.ts';

const IMAGE = 'image.openshift.io';
const TEMPLATE = 'template.openshift.io';
const TAGS = 'imagestreamimages imagestreammappings imagestreams imagestreamtags imagetags';

export const imageAndTemplateRoles: readonly ClusterRole[] = [
  clusterRole(
    'system:openshift:aggregate-images-and-templates-to-edit',
    [
      rule(`${READ} ${WRITE}`, IMAGE, `${TAGS} imagestreams/secrets`),
      rule('get update', IMAGE, 'imagestreams/layers'),
      rule('create', IMAGE, 'imagestreamimports'),
      rule(`${READ} ${WRITE}`, TEMPLATE, 'processedtemplates templateinstances templates'),
    ],
    aggregateTo('edit'),
  ),
  clusterRole(
    'system:openshift:aggregate-images-and-templates-to-view',
    [
      rule(READ, IMAGE, TAGS),
      rule('get', IMAGE, 'imagestreams/layers imagestreams/status'),
      rule(READ, TEMPLATE, 'processedtemplates templateinstances templates'),
    ],
    aggregateTo('view'),
  ),
];

/** Rules of each controller, by the name of its service account. */
export const IMAGE_AND_TEMPLATE_CONTROLLERS: readonly (readonly [string, readonly PolicyRule[]])[] = [
  [
    'imagestream-import-controller',
    [
      rule(READ, IMAGE, 'imagestreams'),
      rule('create', IMAGE, 'imagestreamimports'),
      rule('create get update', IMAGE, 'imagestreams imagestreamtags'),
      rule('get', IMAGE, 'imagestreams/layers'),
    ],
  ],
  [
    'image-trigger-controller',
    [
      rule(READ, IMAGE, 'imagestreams'),
      rule('get list update watch', 'apps', 'daemonsets deployments statefulsets'),
      rule('get list update watch', 'batch', 'cronjobs'),
      eventsRule,
    ],
  ],
  [
    'unidling-controller',
    [
      rule(READ, 'core', 'events'),
      rule('get patch', 'core', 'endpoints services'),
      rule('get update', 'core', 'replicationcontrollers/scale'),
      rule('get update', 'apps', 'deployments/scale replicasets/scale statefulsets/scale'),
      eventsRule,
    ],
  ],
  [
    'template-instance-controller',
    [
      rule('get list update watch', TEMPLATE, 'templateinstances'),
      rule('update', TEMPLATE, 'templateinstances/status'),
      // Objects of a template are created with the permissions of the requester only.
      rule('impersonate', 'core', 'groups serviceaccounts users'),
      rule('impersonate', 'authentication.k8s.io', '*'),
      eventsRule,
    ],
  ],
];

/** Namespace whose image streams and templates every user may read. */
export const SHARED_NAMESPACE = 'openshift';
export const sharedResourceRules: readonly PolicyRule[] = [
  rule(READ, TEMPLATE, 'templates'),
  rule(READ, IMAGE, 'imagestreamimages imagestreams imagestreamtags imagetags'),
  rule('get', IMAGE, 'imagestreams/layers'),
];
