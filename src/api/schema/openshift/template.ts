/** template.openshift.io/v1. Source: openshift/api template/v1 of release 4.10, field names and meaning. */
import { declarePackage } from './declare.ts';

export const templatePackage = declarePackage('template.v1', {
  Template: {
    isKind: true,
    about: 'A template holds objects with references to parameters; processing it makes objects that can be created.',
    fields: {
      message: ['string', 'Text that is shown when the template has been instantiated; may refer to parameters.'],
      objects: ['![]any', 'Objects to make, with references to parameters.'],
      parameters: ['[]#Parameter', 'Parameters of the objects.'],
      labels: ['{}string', 'Labels that every object gets.'],
    },
  },
  Parameter: {
    about: 'Parameter is a name and value, or how to generate the value.',
    fields: {
      name: ['!string', 'Name by which objects refer to it.'],
      displayName: ['string', 'Name for people.'],
      description: ['string', 'Purpose of the parameter.'],
      value: ['string', 'Value of the parameter; generated if the value is empty and generate is set.'],
      generate: ['string', 'The generator; expression is the only one.'],
      from: ['string', 'Input of the generator: an expression such as [a-z]{8}.'],
      required: ['boolean', 'It must have a value.'],
    },
  },
  TemplateInstance: {
    isKind: true,
    about: 'A template instance creates the objects of a template with the permissions of its requester.',
    fields: {
      spec: ['!#TemplateInstanceSpec', 'Template and requester.'],
      status: ['#TemplateInstanceStatus', 'Result of the instantiation.'],
    },
  },
  TemplateInstanceSpec: {
    about: 'TemplateInstanceSpec names the template, its parameters and the requester.',
    fields: {
      template: ['!#Template', 'A complete copy of the template; immutable.'],
      secret: ['#core.LocalObjectReference', 'Secret with the values of the parameters.'],
      requester: ['#TemplateInstanceRequester', 'The user who created the instance; set by the server.'],
    },
  },
  TemplateInstanceRequester: {
    about: 'TemplateInstanceRequester is the user whose permissions are used.',
    fields: {
      username: ['string', 'Name of the user.'],
      uid: ['string', 'UID of the user.'],
      groups: ['[]string', 'Groups of the user.'],
      extra: ['{}[]string', 'Additional information from the authenticator.'],
    },
  },
  TemplateInstanceStatus: {
    about: 'TemplateInstanceStatus is the state of the instance.',
    fields: {
      conditions: ['[]#TemplateInstanceCondition', 'Ready or InstantiateFailure.'],
      objects: ['[]#TemplateInstanceObject', 'Created objects.'],
    },
  },
  TemplateInstanceCondition: {
    about: 'TemplateInstanceCondition is one aspect of the state.',
    fields: {
      type: ['!string', 'Ready or InstantiateFailure.'],
      status: ['!string', 'True, False or Unknown.'],
      lastTransitionTime: ['!date-time', 'When the status changed last.'],
      reason: ['!string', 'One word for programs.'],
      message: ['!string', 'Text for people.'],
    },
  },
  TemplateInstanceObject: {
    about: 'TemplateInstanceObject is one object that has been created.',
    fields: { ref: ['#core.ObjectReference', 'The object.'] },
  },
  BrokerTemplateInstance: {
    isKind: true,
    about: 'A broker template instance is what a service broker knows of a template instance.',
    fields: { spec: ['!#BrokerTemplateInstanceSpec', 'Referenced objects.'] },
  },
  BrokerTemplateInstanceSpec: {
    about: 'BrokerTemplateInstanceSpec names the instance, its secret and its bindings.',
    fields: {
      templateInstance: ['!#core.ObjectReference', 'The template instance.'],
      secret: ['!#core.ObjectReference', 'The secret with its parameters.'],
      bindingIDs: ['[]string', 'Bindings that the broker has given out.'],
    },
  },
});
