"""Write every generated file of the repository, from its root."""

from kopeck.deploy.files import generated_files


def main() -> None:
    for path, text in generated_files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
