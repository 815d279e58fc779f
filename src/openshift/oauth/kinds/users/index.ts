/** Users, their identities and groups. Source: openshift/oauth-apiserver pkg/user/apiserver/registry. */
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS } from '../../../../api/registry/strategies.ts';
import type { Group, Identity, User, UserIdentityMapping } from './types.ts';
import {
  validateGroup,
  validateIdentity,
  validateIdentityUpdate,
  validateMapping,
  validateUser,
} from './validation.ts';

const GROUP = 'user.openshift.io';
const SCHEMA = 'com.github.openshift.api.user.v1';

export const users: KindDefinition<User> = {
  group: GROUP,
  version: 'v1',
  kind: 'User',
  plural: 'users',
  singular: 'user',
  listKind: 'UserList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.User`,
  skeleton: { identities: null, groups: null },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/users',
  nameRule: 'pathSegment',
  strategy: { validate: validateUser },
  columns: [
    nameColumn,
    column<User>('UID', 'UID of the user.', ({ metadata }) => metadata?.uid ?? ''),
    column<User>('Full Name', 'Full name of the user.', ({ fullName }) => fullName ?? ''),
    column<User>('Identities', 'Identities of the user.', ({ identities }) => (identities ?? []).join(', ')),
  ],
};

export const identities: KindDefinition<Identity> = {
  group: GROUP,
  version: 'v1',
  kind: 'Identity',
  plural: 'identities',
  singular: 'identity',
  listKind: 'IdentityList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.Identity`,
  skeleton: { user: {} },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/useridentities',
  nameRule: 'pathSegment',
  strategy: {
    prepareForCreate(identity) {
      // Clients such as `oc create identity` omit the name, which the server derives from the provider.
      const { providerName = '', providerUserName = '', metadata } = identity;
      if (metadata?.name || metadata?.generateName || providerName === '' || providerUserName === '') return;
      identity.metadata = { ...metadata, name: `${providerName}:${providerUserName}` };
    },
    validate: validateIdentity,
    validateUpdate: validateIdentityUpdate,
  },
  fieldSelectors: {
    providerName: (identity) => identity.providerName ?? '',
    providerUserName: (identity) => identity.providerUserName ?? '',
    'user.name': (identity) => identity.user?.name ?? '',
    'user.uid': (identity) => identity.user?.uid ?? '',
  },
  columns: [
    nameColumn,
    column<Identity>('IDP Name', 'Name of the provider.', ({ providerName }) => providerName ?? ''),
    column<Identity>('IDP User Name', 'Name at the provider.', ({ providerUserName }) => providerUserName ?? ''),
    column<Identity>('User Name', 'The user.', ({ user }) => user?.name ?? ''),
    column<Identity>('User UID', 'UID of the user.', ({ user }) => user?.uid ?? ''),
  ],
};

export const groups: KindDefinition<Group> = {
  group: GROUP,
  version: 'v1',
  kind: 'Group',
  plural: 'groups',
  singular: 'group',
  listKind: 'GroupList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: `${SCHEMA}.Group`,
  skeleton: { users: null },
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/groups',
  nameRule: 'pathSegment',
  strategy: { validate: validateGroup },
  columns: [nameColumn, column<Group>('Users', 'Users of the group.', ({ users: names }) => (names ?? []).join(', '))],
};

export const userIdentityMappings: KindDefinition<UserIdentityMapping> = {
  group: GROUP,
  version: 'v1',
  kind: 'UserIdentityMapping',
  plural: 'useridentitymappings',
  singular: 'useridentitymapping',
  listKind: 'UserIdentityMappingList',
  namespaced: false,
  isComputed: true,
  verbs: ['create'],
  schemaName: `${SCHEMA}.UserIdentityMapping`,
  storagePrefix: 'openshift.io/useridentitymappings',
  nameRule: 'pathSegment',
  strategy: { validate: validateMapping },
  columns: [nameColumn],
};

export const userKinds: readonly KindDefinition[] = [users, identities, groups, userIdentityMappings];
