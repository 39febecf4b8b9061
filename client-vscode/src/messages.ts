/** The server's messages to the user, with a button where one says what is to be installed. */
import { commands, window, type Disposable } from "vscode";
import { MessageType, ShowMessageNotification, type LanguageClient } from "vscode-languageclient/node";
import { advised, CREATE } from "./advice";

/** Show them in the place of a client that has started. */
export function showMessages(client: LanguageClient): Disposable {
  return client.onNotification(ShowMessageNotification.type, async ({ type, message: said }) => {
    const { message, extras } = advised(said);
    const buttons = extras.length > 0 ? [CREATE] : [];
    const chosen =
      type === MessageType.Error
        ? await window.showErrorMessage(message, ...buttons)
        : type === MessageType.Warning
          ? await window.showWarningMessage(message, ...buttons)
          : await window.showInformationMessage(message, ...buttons);
    if (chosen === CREATE) {
      await commands.executeCommand("warpwright.createEnvironment", { extras });
    }
  });
}
