/** user.openshift.io/v1. Source: openshift/api user/v1 of release 4.10. */
import { declarePackage } from './declare.ts';

export const userPackage = declarePackage('user.v1', {
  User: {
    isKind: true,
    about: 'A user that has logged in, or that may. The name is that of requests and of subjects of bindings.',
    fields: {
      fullName: ['string', 'Full name of the user.'],
      identities: ['[]string', 'Identities of the user, as PROVIDER:NAME.'],
      groups: ['[]string', 'Groups of the user; Group objects are preferred.'],
    },
  },
  Identity: {
    isKind: true,
    about: 'A login at an identity provider, named PROVIDER:NAME, and the user that it stands for.',
    fields: {
      providerName: ['!string', 'Name of the identity provider.'],
      providerUserName: ['!string', 'Unique name of the login at the provider.'],
      user: ['!#core.ObjectReference', 'The user that the identity is mapped to.'],
      extra: [
        '{}string',
        'Information from the provider in addition to the name, such as email and preferred_username.',
      ],
    },
  },
  UserIdentityMapping: {
    isRequest: true,
    about: 'UserIdentityMapping maps an identity to a user in both objects.',
    fields: {
      identity: ['#core.ObjectReference', 'The identity.'],
      user: ['#core.ObjectReference', 'The user.'],
    },
  },
  Group: {
    isKind: true,
    about: 'A named set of users.',
    fields: { users: ['![]string', 'Names of the users.'] },
  },
});
